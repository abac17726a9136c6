#pragma once

// Everything of xgrad::pretrained, a library of its own: link to it after find_package(xgrad COMPONENTS
// pretrained).

#include "pretrained/config.hpp"
#include "pretrained/encoder.hpp"
#include "pretrained/fine_tuning.hpp"
#include "pretrained/heads.hpp"
#include "pretrained/input.hpp"
#include "pretrained/model.hpp"
#include "pretrained/sentence_embedder.hpp"
#include "pretrained/tokenizer.hpp"
#include "pretrained/tokenizer_files.hpp"
#include "pretrained/word_piece_trainer.hpp"
