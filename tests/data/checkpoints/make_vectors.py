#!/usr/bin/env python3
"""make_vectors.py MODEL OUT: writes OUT/texts.json and OUT/vectors.npy: the tokens and vectors of texts with a folder of
sentence-transformers, computed in float64 and stored as float32. Made with sentence-transformers 6.2.0, transformers 5.24.0,
tokenizers 0.23.3 and torch 2.13.0.
"""

import json
import sys

import numpy
import sentence_transformers
import tokenizers
import torch
import transformers

STORY = (
    "The lighthouse keeper climbed the stairs every evening, counted the ships on the horizon, and wrote their number "
    "into a thick book that nobody but him had ever read. "
)

TEXTS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A cheetah is running behind its prey.",
    "How many people live in Berlin?",
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    "what is the capital of france",
    "WHAT IS THE CAPITAL OF FRANCE?!",
    "Paris",
    "",
    " \t ",
    "\n\nTwo lines\r\nand a third  with   blanks\n",
    "naïve café, Zoë's résumé and Ångström",
    "nai\u0308ve cafe\u0301: the same letters, decomposed",
    "Der Fluß überschwemmte die Straßen von Köln.",
    "L'été, j'ai mangé des crêpes à Saint-Étienne.",
    "¿Dónde está la biblioteca? ¡Aquí!",
    "Привет, как дела сегодня?",
    "Το τρένο φεύγει στις οκτώ.",
    "東京は日本の首都です。",
    "我喜欢学习机器学习。",
    "서울은 대한민국의 수도이다",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "İstanbul'da hava çok güzel",
    "I ❤️ emoji 😀👩‍👩‍👧 and flags 🇩🇪",
    "zero\u200bwidth, soft\u00adhyphen, no\u00a0break, \ufeffmark",
    "full－width ＡＢＣ １２３ and ﬁ ligatures",
    "def f(x): return x**2 if x >= 0 else -x  # code",
    "SELECT name, COUNT(*) FROM users WHERE age > 21 GROUP BY name;",
    "https://example.org/path?query=1&other=two#part",
    "someone@example.org, +49 (30) 123-456",
    "E = mc² and ∑ᵢ xᵢ ≤ ∞ for π ≈ 3.14159",
    "3.14 1e-5 1,000,000 0x1F ½ ⅔ Ⅷ",
    "The [MASK] sat on the [SEP] mat [CLS] [PAD] [UNK].",
    "[mask] in small letters, [ MASK ] with blanks",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "x" * 120,
    "word-word--word---word... 'quoted' \"quoted\" `quoted` “quoted” ‘quoted’",
    "don't can't won't it's they're I'd we've o'clock",
    STORY * 12,
    STORY * 3,
]


def main(model_folder, out):
    model = sentence_transformers.SentenceTransformer(model_folder, device="cpu").double()
    torch.set_num_threads(1)
    vectors = model.encode(TEXTS, batch_size=1, convert_to_tensor=True)
    assert vectors.dtype == torch.float64
    about = {
        "sentence_transformers": sentence_transformers.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "torch": torch.__version__,
        "max_length": model.max_seq_length,
    }
    ids = [model.preprocess([text])["input_ids"][0].tolist() for text in TEXTS]
    rows = [json.dumps({"text": text, "ids": tokens}) for text, tokens in zip(TEXTS, ids)]
    with open(f"{out}/texts.json", "w", encoding="utf-8") as file:
        file.write('{"about": ' + json.dumps(about) + ',\n "texts": [\n  ' + ",\n  ".join(rows) + "\n]}\n")
    numpy.save(f"{out}/vectors.npy", vectors.float().numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
