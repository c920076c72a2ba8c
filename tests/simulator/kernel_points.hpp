// Published measurements of single kernels (kernel_points.json), to hold the models against.
#pragma once

#include <string>
#include <vector>

#include "catalog/gpu.hpp"
#include "catalog/profile.hpp"
#include "simulator/costs/gemm_model.hpp"
#include "simulator/graphs/operators.hpp"

namespace shardwise {

// One set of measurements by one source on one GPU, with what the model says of each.
struct KernelSet {
  std::string name;
  std::vector<double> measured, predicted;  // [s]

  double median_error() const { return error_quantile(0.5); }
  double error_quantile(double share) const;  // of |log(predicted / measured)|
  double bias() const;                        // median of log(predicted / measured)
};

struct KernelPoints {
  std::vector<KernelSet> gemm, attention, memory;
};

// The default profile and a catalogued GPU; both throw where the catalog is broken.
const Profile& published_profile();
const Gpu& catalogued_gpu(const std::string& id);

// Cycles of a lane that these compute, by the default profile.
double lane_cycles(const std::vector<Kernel>& kernels);

// Every set, predicted with the default profile.
const KernelPoints& kernel_points();

}  // namespace shardwise
