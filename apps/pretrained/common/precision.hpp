#pragma once

// --precision of programs that run a pretrained model.

#include <optional>
#include <string>

#include <xgrad/pretrained/model.hpp>

#include "../../common/command_line.hpp"

namespace apps {

class PrecisionOption {
 public:
  void add_to(CommandLine& app);

  /// `others` with the precision that was given.
  xgrad::pretrained::LoadOptions load_options(xgrad::pretrained::LoadOptions others = {}) const;

 private:
  std::optional<std::string> name_;
};

}  // namespace apps
