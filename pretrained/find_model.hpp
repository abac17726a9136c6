#pragma once

#include <string>

namespace xgrad::pretrained {

/// The folder of a model, for from_folder(): `name` if that is a path that exists, else that of the model
/// "sentence-transformers/all-MiniLM-L6-v2" or "bert-base-uncased" in the cache of Hugging Face's library,
/// the snapshot of its branch main. The cache is $HF_HUB_CACHE, $HF_HOME/hub,
/// $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub, the first that is set. Opens no connection.
/// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
///
/// Throws FileError if there is neither, with the places that it looked at, and for a cache without the
/// snapshot.
std::string find_model(const std::string& name);

}  // namespace xgrad::pretrained
