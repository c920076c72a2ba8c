#include "planner/shell/manual.hpp"

#include <algorithm>

#include "catalog/names.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

// A '\' or '-' means itself when escaped, a line that begins with '.' or ''' when guarded.
std::string roff_plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + roff_plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff_plain(text) + "\\fR"; }

// What --help says of a command in one clause, as a sentence. Texts of flags may begin with a value
// and stay as they are.
std::string as_sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.') && !text.ends_with('?')) text += '.';
  return text;
}

std::string argument_name(const CommandOption& o) {
  return sentence(o.required ? "" : "[", italic(o.placeholder), o.repeats ? " ..." : "",
                  o.required ? "" : "]");
}

std::string synopsis(const CommandPage& page) {
  std::string line = bold(joined(page.path, " "));
  for (const CommandOption& o : page.options)
    if (o.required) line += sentence(' ', bold(o.flags.back()), ' ', italic(o.placeholder));
  line += " [" + italic("options") + "]";
  for (const CommandOption& o : page.arguments) line += " " + argument_name(o);
  if (!page.inner.empty())
    line += page.path.size() > 1 ? " [" + italic("command") + "]" : " " + italic("command");
  return line + "\n";
}

std::string option_text(const CommandOption& o) {
  std::string flags;
  for (const std::string& flag : o.flags) flags += (flags.empty() ? "" : ", ") + bold(flag);
  std::string text =
      sentence(".TP\n", flags,
               flags.empty()           ? ""
               : o.placeholder.empty() ? ""
                                       : " ",
               o.placeholder.empty() ? "" : italic(o.placeholder), "\n", roff_plain(o.help), "\n");
  if (o.values.kind != ValueKind::words) return text;
  return text + roff_plain(sentence("(", listed(o.values.words, " or "), ")")) + "\n";
}

std::string section(std::string_view title, const std::vector<CommandOption>& options) {
  std::string text = options.empty() ? "" : sentence(".SH ", title, "\n");
  for (const CommandOption& o : options) text += option_text(o);
  return text;
}

std::string commands_section(const CommandPage& page) {
  std::string text = page.inner.empty() ? "" : ".SH COMMANDS\n";
  for (const CommandPage& below : page.inner) {
    const bool own = page.path.size() == 1;
    text += sentence(".TP\n", own ? bold(manual_name(below)) + "(1)" : synopsis(below),
                     own ? "\n" : "", roff_plain(as_sentence(below.summary)), "\n");
    if (own) continue;
    text += ".RS\n";
    for (const CommandOption& o : below.arguments) text += option_text(o);
    for (const CommandOption& o : below.options) text += option_text(o);
    text += ".RE\n";
  }
  return text;
}

constexpr std::string_view closing = R"text(.SH EXIT STATUS
.TP
0
Answered, also where the answer is that it does not fit.
.TP
2
The request is wrong.
.TP
3
With \fB\-\-require\-fit\fR: nothing fits.
.TP
4
A file cannot be read or written.
.TP
70
A bug of shardwise.
.SH ENVIRONMENT
.TP
.B SHARDWISE_CATALOG
The folder of data files to use in place of the one that belongs to the program.
.TP
.B NO_COLOR
Where it is set, no answer is coloured.
.SH FILES
.TP
.I share/shardwise/catalog
Beside the program's \fIbin\fR: GPUs, nodes, networks, models, frameworks, prices, calibrations and
published runs, with their sources.
.TP
.I share/doc/shardwise
Tutorials, the equations, JSON schemas.
)text";

std::string see_also(const CommandPage& page, const CommandPage& program) {
  std::vector<std::string> names;
  if (page.path.size() > 1) names.push_back(bold(manual_name(program)) + "(1)");
  for (const CommandPage& other : program.inner)
    if (other.path != page.path && page.path.size() > 1)
      names.push_back(bold(manual_name(other)) + "(1)");
  if (names.empty()) return "";
  std::string text = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += sentence(names[i], i + 1 == names.size() ? "\n" : ",\n");
  return text;
}

}  // namespace

std::string manual_name(const CommandPage& page) { return joined(page.path, "-"); }

std::string manual_page(const CommandPage& page, const CommandPage& program,
                        const std::string& version) {
  std::string title = manual_name(page);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string summary = page.summary;
  if (summary.ends_with('.')) summary.pop_back();
  std::string text =
      sentence(".TH ", title, " 1 \"\" \"shardwise ", version, "\" \"User Commands\"\n.SH NAME\n",
               manual_name(page), " \\- ", roff_plain(summary), "\n.SH SYNOPSIS\n", synopsis(page),
               ".SH DESCRIPTION\n", roff_plain(as_sentence(page.summary)), "\n");
  if (!page.closing.empty()) text += sentence(".PP\n", roff_plain(page.closing), "\n");
  text += section("ARGUMENTS", page.arguments) + section("OPTIONS", page.options);
  return text + commands_section(page) + std::string(closing) + see_also(page, program);
}

}  // namespace shardwise
