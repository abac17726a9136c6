#include "precision.hpp"

namespace apps {

void PrecisionOption::add_to(CommandLine& app) {
  app.add_option("--precision", name_, "Precision of the model's layers, instead of the folder's")
      ->check(one_of({"float32", "bfloat16", "int8"}));
}

xgrad::pretrained::LoadOptions PrecisionOption::load_options(xgrad::pretrained::LoadOptions others) const {
  if (name_) others.precision = xgrad::pretrained::precision_named(*name_);
  return others;
}

}  // namespace apps
