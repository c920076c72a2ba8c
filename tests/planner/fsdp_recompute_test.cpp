// FSDP's checkpointing in launch files, beside the Trainer's.
#include "planner/launch/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/planner/read_plan.hpp"

namespace shardwise {
namespace {

// The plan that files say, or what is wrong with them.
std::string said_by(const std::vector<PlanText>& texts) {
  return plan_of(read_as(request_for("llama-3.1-8b", "8xH100-SXM"), texts));
}

}  // namespace

// transformers refuses both together (training_args.py: "can't be set to True simultaneously") and
// says to use FSDP's, so a Trainer that has it off contradicts nothing.
TEST_CASE("what FSDP checkpoints runs again though the Trainer's checkpointing is off") {
  const auto accelerate = [](const char* fsdp) {
    return PlanText{"accelerate.yaml",
                    std::string("distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n"
                                "  fsdp_sharding_strategy: FULL_SHARD\n"
                                "  fsdp_activation_checkpointing: ") +
                        fsdp + "\n"};
  };
  const auto trainer = [](const char* own) {
    return PlanText{"sft.yaml", std::string("model_name_or_path: meta-llama/Llama-3.1-8B\n"
                                            "per_device_train_batch_size: 4\n"
                                            "gradient_checkpointing: ") +
                                    own + "\n"};
  };
  const auto recomputes = [](const std::string& plan) {
    return plan.find("recompute=full") != std::string::npos;
  };
  CHECK(recomputes(said_by({accelerate("true"), trainer("false")})));
  CHECK(recomputes(said_by({trainer("false"), accelerate("true")})));
  CHECK(recomputes(said_by({accelerate("false"), trainer("true")})));
  CHECK(said_by({accelerate("false"), trainer("false")}).find("recompute=none") !=
        std::string::npos);
}

// With the prefix and without it; of FSDP only where there is FSDP.
TEST_CASE("the Trainer's fsdp_config says what FSDP checkpoints") {
  const auto plan = [](const char* fsdp, const char* key) {
    return said_by({{"sft.yaml", std::string("per_device_train_batch_size: 4\nfsdp: \"") + fsdp +
                                     "\"\nfsdp_config:\n  " + key + ": true\n"}});
  };
  CHECK(plan("full_shard auto_wrap", "activation_checkpointing") == "zero=3,mbs=4,recompute=full");
  CHECK(plan("full_shard auto_wrap", "fsdp_activation_checkpointing") ==
        "zero=3,mbs=4,recompute=full");
  CHECK(plan("", "activation_checkpointing").find("recompute=full") == std::string::npos);
}

TEST_CASE("axolotl's FSDP checkpoints though gradient_checkpointing is off") {
  const std::string plan =
      said_by({{"axolotl.yaml",
                "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\n"
                "gradient_checkpointing: false\nfsdp_version: 2\nfsdp_config:\n"
                "  reshard_after_forward: true\n  activation_checkpointing: true\n"}});
  CHECK(plan.find("recompute=full") != std::string::npos);
}

}  // namespace shardwise
