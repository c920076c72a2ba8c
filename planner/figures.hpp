// Figures as people read them: three digits where three are meant, units always said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/adapter.hpp"
#include "catalog/preference.hpp"
#include "catalog/units.hpp"

namespace shardwise {

std::string fixed(double value, int decimals);            // "12.30"
std::string padded(std::string text, std::size_t width);  // spaces before
std::string left(std::string text, std::size_t width);    // spaces after
std::string grouped(std::int64_t value);                  // "1,234,567"
std::string shown_gib(Bytes bytes);                       // "14.2 GiB", "1,051 GiB"; sign kept
std::string shown_gib_number(Bytes bytes);                // the same without the unit
std::string shown_difference(Bytes bytes);                // the same; below 0.05 GiB "13 MiB"
std::string shown_time(Seconds time);          // "850 us", "12.3 ms", "4.20 s", "3.5 min", "2.1 h"
std::string shown_parameters(std::int64_t n);  // "70.6 B", "124 M"
std::string shown_share(double fraction);      // "22.4 %"
std::string share_number(double fraction);     // the same without the sign
std::string shown_percent(double fraction);    // "+22 %", "-3 %"
std::string shown_rate(double per_second);     // "0.85", "12.3", "1,234"
std::string counted(std::int64_t n, std::string_view one);  // "1 GPU", "1,024 GPUs"
std::string shown_samples(std::int64_t n, const PreferenceRow* preference);  // "16 pairs for dpo"

// "q,v": the linears that have adapters, as --lora-targets takes them.
std::string target_names(const AdapterTargets& targets);

// "128GiB", "24 GB", "1.5TiB": a size needs its unit. Nothing where it cannot be read.
std::optional<Bytes> size_in(std::string_view text);

}  // namespace shardwise
