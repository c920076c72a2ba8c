#include "planner/report/catalog_pages.hpp"

#include <algorithm>

#include "planner/figures.hpp"
#include "planner/report/catalog_tables.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// Text that Markdown takes for itself.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '[' || c == ']' || c == '<' || c == '~')
      out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// The sources of a page, numbered in the order in which they are first named.
class SourceList {
 public:
  std::string reference(const std::string& source) {
    auto at = std::find(sources_.begin(), sources_.end(), source);
    if (at == sources_.end()) at = sources_.insert(sources_.end(), source);
    return sentence('[', at - sources_.begin() + 1, "](#sources)");
  }

  std::string text() const {
    std::string all = "\n## Sources\n\n";
    for (std::size_t i = 0; i < sources_.size(); ++i)
      all += sentence(i + 1, ". ", linked_source(sources_[i]), "\n");
    return all;
  }

 private:
  std::vector<std::string> sources_;
};

std::string table_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += sentence(' ', cell.empty() ? "-" : cell, " |");
  return line + "\n";
}

// The first column to the left, figures to the right.
std::string markdown_table(const Table& t) {
  std::vector<std::string> rule;
  for (std::size_t i = 0; i < t.header.size(); ++i)
    rule.emplace_back(i == 0 || t.header[i] == "source" ? "---" : "---:");
  std::string text = table_line(t.header) + table_line(rule);
  for (const auto& row : t.rows) text += table_line(row);
  return text;
}

void add_source(Table& t, std::size_t row, const Provenance& p, SourceList& sources) {
  for (std::string& cell : t.rows[row]) cell = plain(cell);
  t.rows[row].resize(t.header.size() - 1);
  t.rows[row].push_back(sources.reference(p.source));
}

CatalogPage page(std::string_view name, const std::string& title, const Table& table,
                 const std::string& more, const SourceList& sources) {
  return {sentence(name, ".md"), table.rows.size(),
          sentence("# ", title,
                   "\n\nMade from the data files by `shardwise catalog pages docs/catalog`.\n\n",
                   markdown_table(table), more, sources.text())};
}

std::string launch_prices(const Catalog& c, SourceList& sources) {
  Table t{{"GPU", "$ when it came out", "on", "source"}, {}};
  for (const LaunchPrice& p : c.prices.launch) {
    t.rows.push_back({p.gpu, fixed(p.msrp.value, 0), p.launch_date});
    add_source(t, t.rows.size() - 1, p.provenance, sources);
  }
  return "\n## Cards\n\n" + markdown_table(t);
}

CatalogPage listed_page(const CatalogListing& listing, const Catalog& c) {
  Table t = listing.table(c);
  SourceList sources;
  t.header.emplace_back("source");
  const auto rows = listing.sources(c);
  for (std::size_t i = 0; i < t.rows.size(); ++i) add_source(t, i, *rows[i], sources);
  std::string title(listing.name);
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  const std::string more = listing.name == "prices" ? launch_prices(c, sources) : "";
  return page(listing.name, listing.name == "gpus" ? "GPUs" : title, t, more, sources);
}

// Every group of constants that forecasts rest on where no profile of the GPU's own is there.
std::string published_groups(const Profile& p, SourceList& sources) {
  Table t{{"family", "group", "trust", "half width %", "date", "source"}, {}};
  const auto add = [&](const std::string& family, const std::string& group, const Evidence& e) {
    t.rows.push_back({family, group, std::string(trust_name(e.trust)), fixed(100 * e.spread, 0),
                      e.provenance.date});
    add_source(t, t.rows.size() - 1, e.provenance, sources);
  };
  for (const FamilyCalibration& f : p.families) {
    add(f.family, "matrix products", f.gemm.evidence);
    add(f.family, "rate kept in a training step", f.training_load.evidence);
    for (const AttentionCalibration& a : f.attention)
      add(f.family,
          a.before ? sentence("attention, ", name(a.kernel), " before ", a.before->major, '.',
                              a.before->minor)
                   : sentence("attention, ", name(a.kernel)),
          a.evidence);
    add(f.family, "kernels that move bytes", f.memory.evidence);
    add(f.family, "memory outside tensors", f.context.evidence);
  }
  add("all", "chips of one kind", p.chips.evidence);
  add("all", "layout of operands", p.gemm_layout.evidence);
  add("all", "attention with stored scores", p.eager_attention.evidence);
  add("all", "loops that compute", p.lane_evidence);
  add("all", "host", p.host.evidence);
  return sentence("\n## ", p.name,
                  "\n\nHalf width: of the 80 % interval of the times that the group",
                  " predicts. Links: ", p.links.name, " ",
                  sources.reference(p.links.provenance.source), ".\n\n", markdown_table(t));
}

CatalogPage profile_page(const Calibration& calibration) {
  Table t = profile_table(calibration);
  t.header.emplace_back("source");
  SourceList sources;
  const auto devices = profiles_by_name(calibration);
  for (std::size_t i = 0; i < devices.size(); ++i)
    add_source(t, i, devices[i]->provenance, sources);
  const std::string published = published_groups(calibration.profile, sources);
  return page("profiles", "Calibration profiles", t, published, sources);
}

bool is_commit(std::string_view text) {
  return text.size() >= 7 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "owner/repository:path@commit" as a link, or nothing.
std::string repository_link(std::string_view word) {
  const std::size_t colon = word.find(':'), at = word.rfind('@'), slash = word.find('/');
  if (slash == std::string_view::npos || at == std::string_view::npos || !(slash < colon) ||
      !(colon < at) || word.find('/', slash + 1) < colon || !is_commit(word.substr(at + 1)))
    return "";
  const std::string_view repository = word.substr(0, colon),
                         path = word.substr(colon + 1, at - colon - 1),
                         commit = word.substr(at + 1);
  return sentence('[', plain(repository), ':', plain(path), "](https://github.com/", repository,
                  "/blob/", commit, '/', path, ')');
}

std::string paper_link(std::string_view number) {
  const bool digits = number.size() == 10 && number[4] == '.' &&
                      number.find_first_not_of("0123456789.") == std::string_view::npos;
  return digits ? sentence('[', number, "](https://arxiv.org/abs/", number, ')') : "";
}

}  // namespace

std::vector<const DeviceProfile*> profiles_by_name(const Calibration& calibration) {
  std::vector<const DeviceProfile*> devices;
  for (const DeviceProfile& d : calibration.devices) devices.push_back(&d);
  std::sort(devices.begin(), devices.end(),
            [](const DeviceProfile* a, const DeviceProfile* b) { return a->name < b->name; });
  return devices;
}

Table profile_table(const Calibration& calibration) {
  Table t{{"profile", "GPU", "trust", "constants", "curves", "samples", "date"}, {}};
  for (const DeviceProfile* d : profiles_by_name(calibration))
    t.rows.push_back({d->name, d->gpu, std::string(trust_name(d->trust)),
                      std::to_string(d->constants.size()), std::to_string(d->fits.size()),
                      grouped(d->samples), d->provenance.date});
  return t;
}

std::string linked_source(const std::string& source) {
  std::string text;
  for (std::size_t begin = 0; begin < source.size();) {
    std::size_t end = std::min(source.find(' ', begin), source.size());
    std::size_t stop = end;
    while (stop > begin && (source[stop - 1] == ';' || source[stop - 1] == ',')) --stop;
    const std::string_view word(source.data() + begin, stop - begin);
    std::string link = repository_link(word);
    if (link.empty()) link = paper_link(word);
    text += sentence(text.empty() ? "" : " ", link.empty() ? plain(word) : link,
                     plain(std::string_view(source).substr(stop, end - stop)));
    begin = end + 1;
  }
  return text;
}

std::vector<CatalogPage> catalog_pages(const Catalog& catalog, const Calibration& calibration) {
  std::vector<CatalogPage> pages;
  for (const CatalogListing& listing : catalog_listings())
    pages.push_back(listed_page(listing, catalog));
  pages.push_back(profile_page(calibration));
  return pages;
}

}  // namespace shardwise
