// What a person at the terminal reads while a machine is measured.
#pragma once

#include <string>

#include "calibrate/measuring/campaign.hpp"

namespace shardwise {

// "GPU 0: 12 of 140, 0:41 left: gemm dtype=bf16 ... 1.234 ms, spread 0.4 %, 12 runs (1 discarded)"
std::string progress_text(const Progress& progress);

// "GPU 0: all measured", or why not.
std::string end_text(const Subject& subject, CampaignEnd end);

}  // namespace shardwise
