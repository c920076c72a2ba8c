// A calibration by several processes: all take the same decisions, rank 0 alone has the file.
#pragma once

#include "calibrate/measuring/calibration.hpp"
#include "calibrate/measuring/rendezvous.hpp"

namespace shardwise {

// As run_calibration, called by every rank with subjects whose devices agree on what they tell. The
// facts and the file are rank 0's; where one rank is interrupted, all end. Throws RendezvousBroken.
int calibrate_ranks(const CalibrationOptions& options, const RankPlace& place, Rendezvous& others,
                    CalibrationMachine machine, const std::function<bool()>& interrupted,
                    std::ostream& messages);

}  // namespace shardwise
