#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../config.hpp"
#include "fields.hpp"

// Not installed: what the config.json of all families has, and how it is written.
namespace xgrad::pretrained::detail {

/// Names fields that say nothing of what a model computes.
void ignore_unrelated(Fields& fields);

/// layer_types, which says which layers have the window; `types` is the field.
void read_layer_types(const Json& types, Config& config);
void write_layer_types(Fields& fields, const Config& config);

/// The first of `architectures`, or empty.
std::string architecture_in(const Json& json);

struct LabelFields {
  std::vector<std::string> id2label = {};
  std::optional<ProblemType> problem_type = {};
};

/// Of the file that the fields read; two labels without any.
LabelFields labels_in(Fields& fields);

/// What a config has changed since it was read; all is written where nothing was.
struct ConfigChange {
  const std::string& read;                                 ///< the text of the file, empty for a new config
  std::map<std::string, std::string> then = {}, now = {};  ///< JSON by name, as Fields collects it
  LabelFields labels_then = {}, labels = {};
};

/// What the file says of the model beside it.
struct ConfigHead {
  const char* model_type;
  const std::string &architecture, &dtype, &quantization;  ///< the last is JSON, or empty
};

/// The text of config.json.
std::string config_json(const ConfigChange& change, const ConfigHead& head);

/// Throws ValueError for the first member (JSON by name) that is another one in the config that a file of the
/// family gives back: a model would be saved as another one.
void refuse_lost(const std::map<std::string, std::string>& members,
                 const std::map<std::string, std::string>& given_back, const char* model_type);

}  // namespace xgrad::pretrained::detail
