// Indices of the lines of a file: made, read, made again when something has changed, and refused.

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <xgrad/files.hpp>
#include <xgrad/retrieval.hpp>

#include "../../retrieval/detail/nearest_hits.hpp"
#include "../expect_error.hpp"
#include "../pretrained/folder.hpp"

namespace search_index_test {

using namespace xgrad::pretrained;
using namespace xgrad::retrieval;
using xgrad::Array, xgrad::DType, xgrad::FileError, xgrad::Ids, xgrad::Metadata, xgrad::TensorView,
    xgrad::ValueError;
using xgrad_tests::FolderCopy, xgrad_tests::message_of, xgrad_tests::model_folder, xgrad_tests::read_bytes,
    xgrad_tests::TemporaryFolder;

class SearchIndexTest : public testing::Test {
 protected:
  SearchIndex<float> open(const SentenceEmbedder<float>& embedder, SearchIndexOptions options = {}) {
    notes_.clear();
    options.note = [this](const std::string& note) { notes_.push_back(note); };
    return SearchIndex<float>::open(path_, corpus_, embedder, options);
  }
  SearchIndex<float> open(SearchIndexOptions options = {}) { return open(embedder_, options); }

  std::vector<std::string> made(const std::string& why = "is made") const { return {path_ + ": " + why}; }
  static std::vector<std::string> texts_of(const SearchIndex<float>& index) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < index.size(); ++i) texts.emplace_back(index.text(i));
    return texts;
  }

  const TemporaryFolder folder_;
  const std::string corpus_ =
                        folder_.write("texts", "\xef\xbb\xbfmy shoes\r\n\n \t\nbig feet\nthe old house"),
                    path_ = folder_.path("texts.index");
  const FolderCopy copy_{"bert_sentence"};
  const SentenceEmbedder<float> embedder_ = SentenceEmbedder<float>::from_folder(copy_.path());
  std::vector<std::string> notes_;
};

TEST_F(SearchIndexTest, IsMadeOnceAndFindsLines) {
  std::vector<std::size_t> done;
  const SearchIndex<float> made_index =
      open({.batch_size = 2, .progress = [&](std::size_t some, std::size_t all) {
              EXPECT_EQ(all, 3U);
              done.push_back(some);
            }});
  EXPECT_EQ(notes_, made());
  EXPECT_EQ(done, (std::vector<std::size_t>{2, 3}));
  const std::string bytes = read_bytes(path_);
  const SearchIndex<float> index = open();
  EXPECT_TRUE(notes_.empty());
  EXPECT_TRUE(read_bytes(path_) == bytes);
  EXPECT_EQ(index.vector_size(), 32U);
  const std::vector<std::string> texts{"my shoes", "big feet", "the old house"};
  EXPECT_EQ(texts_of(index), texts);
  EXPECT_EQ(index.line(0), 1U);
  EXPECT_EQ(index.line(1), 4U);
  EXPECT_EQ(index.line(2), 5U);

  const Array<float> vectors = embedder_(texts);
  const auto expected = semantic_search(vectors, vectors, {.top_k = 2});
  const auto found = index.search(vectors, {.top_k = 2});
  for (std::size_t q = 0; q < 3; ++q) {
    EXPECT_EQ(found[q][0].index, q);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(found[q][i].index, expected[q][i].index);
      EXPECT_EQ(found[q][i].score, expected[q][i].score);
    }
  }
  EXPECT_EQ(folder_.file_count(), 2U);
}

TEST_F(SearchIndexTest, TellsHowManyOfAllTextsAreDone) {
  std::string lines;
  for (int i = 0; i < 2049; ++i) lines += "my\n";  // one more than are embedded at once
  folder_.write("texts", lines);
  std::vector<std::size_t> done;
  open({.batch_size = 1024, .progress = [&](std::size_t some, std::size_t all) {
          EXPECT_EQ(all, 2049U);
          done.push_back(some);
        }});
  EXPECT_EQ(done, (std::vector<std::size_t>{1024, 2048, 2049}));
}

TEST_F(SearchIndexTest, IsMadeAgainForWhatHasChanged) {
  open();
  folder_.write("texts", "my shoes\n");
  EXPECT_EQ(texts_of(open()), std::vector<std::string>{"my shoes"});
  EXPECT_EQ(notes_, made("is made again, for another corpus"));
  const auto again = std::filesystem::last_write_time(corpus_);
  folder_.write("texts", "my house\n");
  std::filesystem::last_write_time(corpus_, again);  // as the size, too, is the same
  EXPECT_EQ(texts_of(open()), std::vector<std::string>{"my house"});

  const auto expect_again = [&](const SearchIndexOptions& options, const std::string& what) {
    open(options);
    EXPECT_EQ(notes_, made("is made again, for another " + what));
    open(options);
    EXPECT_TRUE(notes_.empty()) << what;
  };
  expect_again({.prompt = "big "}, "prompt");
  expect_again({.prompt = "the "}, "prompt");
  SearchIndex<double>::open(path_, corpus_, SentenceEmbedder<double>::from_folder(copy_.path()),
                            {.prompt = "the ", .note = [](const std::string&) {}});
  expect_again({.prompt = "the "}, "type");
  const auto rounded = SentenceEmbedder<float>::from_folder(copy_.path(), {.precision = Precision::int8});
  EXPECT_EQ(rounded.encoder().precision(), Precision::int8);
  SearchIndex<float>::open(path_, corpus_, rounded, {.prompt = "the ", .note = [](const std::string&) {}});
  expect_again({.prompt = "the "}, "precision");

  copy_.write("README.md", "Notes do not matter.");
  open({.prompt = "the "});
  EXPECT_TRUE(notes_.empty());
  copy_.write("config_sentence_transformers.json",
              R"({"prompts": {"query": "my ", "passage": "old "}, "similarity_fn_name": "dot"})");
  expect_again({.prompt = "the "}, "model");
  static std::vector<std::byte> others;
  copy_.change([](std::vector<TensorView>& tensors) {
    others.assign(tensors[0].bytes.begin(), tensors[0].bytes.end());
    others[0] ^= std::byte{1};
    tensors[0].bytes = others;
  });
  expect_again({.prompt = "the "}, "model");
  copy_.write("1_Pooling/config.json",
              R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  expect_again({.prompt = "the "}, "model");
  copy_.write("vocab.txt", read_bytes(copy_.path("vocab.txt")) + "more\n");
  expect_again({.prompt = "the "}, "model");
}

TEST_F(SearchIndexTest, TextsHaveThePromptForDocuments) {
  copy_.write("config_sentence_transformers.json",
              R"({"prompts": {"query": "my ", "corpus": "big ", "passage": "old "}})");
  const auto embedder = SentenceEmbedder<float>::from_folder(copy_.path());
  EXPECT_EQ(embedder.query_prompt(), "query");
  EXPECT_EQ(embedder.document_prompt(), "passage");
  const auto score = [&](const SearchIndexOptions& options, const std::string& prompt) {
    const std::vector<std::string> text{"my shoes"};
    return open(embedder, options).search(embedder(text, {.prompt = prompt}))[0][0].score;
  };
  EXPECT_NEAR(score({}, "old "), 1, 1e-6);
  EXPECT_NEAR(score({.prompt_name = "corpus"}, "big "), 1, 1e-6);
  EXPECT_NEAR(score({.prompt = ""}, ""), 1, 1e-6);
  EXPECT_LT(score({.prompt = ""}, "old "), 0.9999);
  EXPECT_EQ(message_of<ValueError>([&] { open(embedder, {.prompt_name = "x"}); }),
            "SentenceEmbedder: prompt_name must be one of corpus, passage, query, got \"x\"");
}

TEST_F(SearchIndexTest, LinesThatAreNotUtf8AreAnErrorOrLeftOut) {
  folder_.write("texts", "my shoes\ncaf\xe9\nbig feet\n");
  const std::string error = corpus_ + ":2: a line must be UTF-8, got an invalid byte at 3";
  EXPECT_EQ(message_of<FileError>([&] { open(); }), error);
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(folder_.file_count(), 1U);
  const SearchIndex<float> index = open({.skip_invalid = true});
  EXPECT_EQ(texts_of(index), (std::vector<std::string>{"my shoes", "big feet"}));
  EXPECT_EQ(index.line(1), 3U);
  EXPECT_EQ(notes_, (std::vector<std::string>{error + "; it is left out", path_ + ": is made"}));
  open({.skip_invalid = true});
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(message_of<FileError>([&] { open(); }), error) << "although there is an index without the line";

  std::string many;
  for (int i = 0; i < 5; ++i) many += "\xff\n";
  folder_.write("texts", many);
  open({.skip_invalid = true});
  EXPECT_EQ(notes_.size(), 6U) << "each line, and that the index is made again";
  many += "\xff\n\xff\n";
  folder_.write("texts", many);
  EXPECT_EQ(open({.skip_invalid = true}).size(), 0U);
  EXPECT_EQ(notes_.size(), 7U);
  EXPECT_EQ(notes_[5], corpus_ + ": 7 lines are left out");
}

TEST_F(SearchIndexTest, AnEmptyFileHasAnEmptyIndex) {
  folder_.write("texts", "");
  EXPECT_EQ(open().size(), 0U);
  EXPECT_TRUE(open().search(embedder_(std::vector<std::string>{"my shoes"}))[0].empty());
  EXPECT_TRUE(notes_.empty());
}

TEST_F(SearchIndexTest, WhatStopsTheWorkLeavesTheOldIndex) {
  open();
  const std::string bytes = read_bytes(path_);
  struct Stop {};
  EXPECT_THROW(open({.prompt = "big ", .progress = [](std::size_t, std::size_t) { throw Stop(); }}), Stop);
  EXPECT_TRUE(read_bytes(path_) == bytes);
  EXPECT_EQ(folder_.file_count(), 2U);
}

TEST_F(SearchIndexTest, OtherFilesAreNeverReplaced) {
  for (const std::string& other : {std::string("notes"), read_bytes(copy_.path("model.safetensors"))}) {
    folder_.write("texts.index", other);
    EXPECT_TRUE(message_of<FileError>([&] { open(); }).starts_with(path_ + ": "));
    EXPECT_TRUE(read_bytes(path_) == other);
  }
  EXPECT_EQ(message_of<FileError>([&] { open(); }),
            path_ + ": format must be \"xgrad search index 2\", got \"pt\"");
  EXPECT_EQ(message_of<FileError>([&] { SearchIndex<float>(path_, folder_.path("none")); }),
            folder_.path("none") + ": cannot be read: No such file or directory");
}

TEST_F(SearchIndexTest, BrokenIndicesAreRefused) {
  const Metadata metadata{{"format", "xgrad search index 2"}};
  const Ids places{{1, 0, 8}, {4, 17, 8}};
  const Array<float> vectors{{1, 2, 3}, {4, 5, 6}}, column = xt::ones<float>({3, 1}),
                                                    empty = Array<float>::from_shape({2, 0});
  const Array<double> lengths{1, 2};
  const auto refusal = [&](const std::vector<TensorView>& tensors) {
    xgrad::write_safetensors(tensors, path_, metadata);
    const std::string message = message_of<FileError>([&] { SearchIndex<float>(path_, corpus_); });
    return message.starts_with(path_ + ": ") ? message.substr(path_.size() + 2) : message;
  };
  const TensorView of_places = view_of("places", places), of_vectors = view_of("vectors", vectors),
                   of_lengths = view_of("lengths", lengths);
  EXPECT_EQ(refusal({of_places, of_vectors, of_lengths}), "must have the tensor digest");
  EXPECT_EQ(refusal({of_places, of_lengths}), "must have the tensor vectors");
  EXPECT_EQ(refusal({of_places, view_of("vectors", lengths), of_lengths}), "vectors must be F32, got F64");
  EXPECT_EQ(refusal({of_places, of_vectors, view_of("lengths", vectors)}), "lengths must be F64, got F32");
  const std::string shapes =
      "places, vectors and lengths must have the shapes (texts, 3), (texts, size) and (texts), got ";
  EXPECT_EQ(refusal({of_places, view_of("vectors", column), of_lengths}), shapes + "(2, 3), (3, 1) and (2)");
  EXPECT_EQ(refusal({of_places, view_of("vectors", empty), of_lengths}), shapes + "(2, 3), (2, 0) and (2)");
  const Ids pairs{{1, 2}, {3, 4}, {5, 6}};
  EXPECT_EQ(refusal({view_of("places", pairs), of_vectors, of_lengths}), shapes + "(3, 2), (2, 3) and (2)");
  const Array<bool> odd{true};
  xgrad::SafetensorsWriter file({{"a", DType::BOOL, {1}, {}}, of_places, of_vectors, of_lengths}, path_,
                                metadata);
  for (const TensorView& tensor : {view_of("a", odd), of_places, of_vectors, of_lengths})
    file.write(tensor.bytes);
  file.commit();
  EXPECT_EQ(message_of<FileError>([&] { SearchIndex<float>(path_, corpus_); }),
            path_ + ": places must begin at a multiple of 8 bytes");

  for (const TextPlace& outside : std::vector<TextPlace>{
           {0, 0, 8}, {1, -1, 8}, {1, 0, -1}, {1, 0, 40}, {1, 30, 10}, {1, 40, 0}, {1, 1, INT64_MAX}}) {
    SearchIndexWriter<float> writer(path_, std::span(&outside, 1), 2);
    writer.append({{1, 2}});
    writer.commit();
    const SearchIndex<float> index(path_, corpus_);
    EXPECT_TRUE(message_of<FileError>([&] {
                  index.text(0);
                }).starts_with(path_ + ": places must be in the corpus of 39 bytes, got line "));
  }
  EXPECT_EQ(message_of<xgrad::IndexError>([&] { SearchIndex<float>(path_, corpus_).line(1); }),
            "SearchIndex: a text must be below 1, got 1");
}

TEST_F(SearchIndexTest, AChangedFileNeverHasOtherHits) {
  const std::vector<std::string> query{"my shoes"};
  const Array<float> vector = embedder_(query);
  open();
  const std::string whole = read_bytes(path_);
  const auto expect_same = [&](const std::string& bytes, const std::string& what) {
    folder_.write("texts.index", bytes);
    const std::string refused = message_of<FileError>([&] { SearchIndex<float>(path_, corpus_); });
    EXPECT_TRUE(refused == "no exception" || refused.starts_with(path_ + ": ")) << what << refused;
    try {
      const SearchIndex<float> index = open();
      EXPECT_EQ(notes_.empty(), refused == "no exception") << what;
      const auto hits = index.search(vector, {.top_k = 3});
      ASSERT_EQ(hits[0].size(), 3U) << what;
      EXPECT_EQ(index.text(hits[0][0].index), query[0]) << what;
      EXPECT_NEAR(hits[0][0].score, 1, 1e-6) << what;
      EXPECT_TRUE(notes_.empty() || read_bytes(path_) == whole) << what << ": is made again as it was";
    } catch (const FileError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path_ + ": ")) << what << error.what();
      EXPECT_TRUE(read_bytes(path_) == bytes) << what << ": is no index, and not replaced";
    }
  };
  for (std::size_t i = 0; i < whole.size(); i += 5) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    expect_same(bytes, "byte " + std::to_string(i) + ": ");
  }
  for (std::size_t size = 0; size < whole.size(); size += 37)
    expect_same(whole.substr(0, size), "cut to " + std::to_string(size) + ": ");
  expect_same(whole + '\0', "a byte more: ");
  expect_same(whole + whole, "twice: ");

  std::string bytes = whole;
  bytes[bytes.size() - 9] ^= 0x40;  // of the last length
  folder_.write("texts.index", bytes);
  EXPECT_EQ(message_of<FileError>([&] { SearchIndex<float>(path_, corpus_); }),
            path_ + ": the content must be that of its digest, got another one");
  open();
  EXPECT_EQ(notes_, made("is made again, as its content is not that of its digest"));
}

TEST_F(SearchIndexTest, AnIndexOfAnotherFormatIsMadeAgain) {
  open();
  const std::string whole = read_bytes(path_), format = "xgrad search index ";
  std::string older = whole;
  older[older.find(format) + format.size()] = '1';
  folder_.write("texts.index", older);
  EXPECT_EQ(message_of<FileError>([&] { SearchIndex<float>(path_, corpus_); }),
            path_ + ": format must be \"xgrad search index 2\", got \"xgrad search index 1\"");
  open();
  EXPECT_EQ(notes_, made("is made again, for another format"));
  EXPECT_TRUE(read_bytes(path_) == whole);
}

TEST(NearestHitsTest, AnyLengthsAndVectorsAreSearchedWithoutNan) {
  const Array<float> vectors{{NAN, 2}, {4, INFINITY}, {1, 1}, {-1, 2}}, query{{1, 1}};
  for (const double length : {std::nan(""), -1.0, 0.0, 1e300, HUGE_VAL}) {
    const std::vector<double> lengths{1, length, length, length};
    for (const Similarity similarity : {Similarity::cosine, Similarity::dot}) {
      const auto hits =
          xgrad::retrieval::detail::nearest_hits<float>("f", query, std::span(vectors.data(), vectors.size()),
                                                        lengths, 2, {.top_k = 3, .similarity = similarity});
      for (const SearchHit& hit : hits[0]) {
        EXPECT_FALSE(std::isnan(hit.score));
        EXPECT_NE(hit.index, 0U);
      }
    }
  }
}

TEST_F(SearchIndexTest, AWriterTakesOneFiniteVectorForEachPlace) {
  const std::vector<TextPlace> places{{1, 0, 8}, {4, 17, 8}};
  EXPECT_EQ(message_of<ValueError>([&] { SearchIndexWriter<double>(path_, places, 0); }),
            "SearchIndexWriter: vector_size must be at least 1, got 0");
  SearchIndexWriter<double> writer(path_, places, 2);
  EXPECT_EQ(message_of<xgrad::ShapeError>([&] {
              writer.append({{1, 2, 3}});
            }),
            "SearchIndexWriter: vectors must have the shape (n, 2), got (1, 3)");
  writer.append({{3, 4}});
  EXPECT_EQ(message_of<ValueError>([&] {
              writer.append({{1, NAN}});
            }),
            "SearchIndexWriter: vectors must be finite, which that of line 4 is not");
  EXPECT_EQ(message_of<ValueError>([&] { writer.commit(); }),
            "SearchIndexWriter: there must be one vector for each of the 2 places, got 1");
  EXPECT_EQ(message_of<ValueError>([&] {
              writer.append({{1, 2}, {3, 4}});
            }),
            "SearchIndexWriter: there must be one vector for each of the 2 places, got more");
  writer.append({{0, 2}});
  writer.commit();
  const SearchIndex<double> index(path_, corpus_);
  EXPECT_EQ(index.text(1), "big feet");
  EXPECT_EQ(index.search({{0, 1}})[0][1].score, 0.8);
}

TEST(SentenceEmbedderTest, ReadsHowVectorsAreCompared) {
  const FolderCopy copy("bert_sentence");
  const auto similarity = [&](const std::string& name) {
    copy.write("config_sentence_transformers.json", R"({"similarity_fn_name": )" + name + "}");
    return SentenceEmbedder<float>::from_folder(copy.path()).similarity();
  };
  EXPECT_EQ(similarity("null"), Similarity::cosine);
  EXPECT_EQ(similarity(R"("cosine")"), Similarity::cosine);
  EXPECT_EQ(similarity(R"("dot")"), Similarity::dot);
  EXPECT_EQ(similarity(R"("euclidean")"), Similarity::euclidean);
  EXPECT_EQ(similarity(R"("manhattan")"), Similarity::manhattan);
  EXPECT_EQ(message_of<FileError>([&] { similarity(R"("other")"); }),
            copy.path("config_sentence_transformers.json") +
                ": similarity_fn_name must be cosine, dot, euclidean or manhattan, got \"other\"");
  EXPECT_EQ(
      SentenceEmbedder<float>::from_folder(model_folder("bert_classifier"), {.note = [](const auto&) {}})
          .similarity(),
      Similarity::cosine);
}

}  // namespace search_index_test
