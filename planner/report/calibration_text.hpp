// What `shardwise calibrate import` prints: what was read in a log and what was fitted to it.
#pragma once

#include <string>
#include <vector>

#include "catalog/units.hpp"

namespace shardwise {

struct ImportedLog;
struct SizeFit;
struct Sweep;

// Per file: its format, what it measured, and every line that was not understood.
std::string import_text(const ImportedLog& log);

// Measured against fitted by size, regime by regime.
std::string sweep_text(const Sweep& sweep, const SizeFit& fit);

// The error of every sweep when one size is left out of its fit, and over all of them.
std::string left_out_text(const std::vector<Sweep>& sweeps);

std::string shown_bytes(Bytes bytes);  // "8 B", "128 KiB", "1.5 GiB"

}  // namespace shardwise
