// Why no plan passes a microbatch that was asked for.
#pragma once

#include <cstdint>

#include "catalog/result.hpp"

namespace shardwise {

// `asked` sequences on each of `gpus` at once, of `batch` per step.
Problem no_microbatch(std::int64_t gpus, std::int64_t batch, int asked);

}  // namespace shardwise
