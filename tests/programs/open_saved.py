#!/usr/bin/env python3
"""open_saved.py DIR: opens the folders that save_models wrote with transformers and sentence-transformers, and compares what
these compute with results.safetensors beside each model.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer

ALLOWED = 1e-5  # of the largest value: transformers computes norms and angles in float32 here and there


def deviation(got, want):
    got = torch.as_tensor(got).double()
    assert got.shape == want.shape, f"the shape is {tuple(got.shape)}, not {tuple(want.shape)}"
    return ((got - want).abs().max() / want.abs().max()).item()


def compare_model(folder, results):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, loading = getattr(transformers, name).from_pretrained(folder, dtype=torch.float64, output_loading_info=True)
    for what, keys in loading.items():
        assert not keys, f"{what}: {keys}"
    mask, ids = results.pop("attention_mask").long(), results.pop("input_ids").long()
    with torch.no_grad():
        outputs = model.eval()(input_ids=ids, attention_mask=mask)
    worst = 0
    for key, want in results.items():
        got = outputs[key].double()
        if want.dim() >= 2 and want.shape[:2] == ids.shape:  # of tokens: what padding gets depends on the kernel
            got, want = got[mask == 1], want[mask == 1]
        worst = max(worst, deviation(got, want))
    return worst


def compare_texts(folder, results):
    texts = json.loads((folder / "texts.json").read_text())
    if "vectors" in results:
        return deviation(SentenceTransformer(str(folder), device="cpu").encode(texts), results["vectors"])
    scores = CrossEncoder(str(folder), device="cpu").predict([tuple(pair) for pair in texts])
    return deviation(torch.as_tensor(scores).reshape(results["scores"].shape), results["scores"])


def main(root):
    folders = sorted(path.parent for path in Path(root).glob("*/results.safetensors"))
    assert folders, f"{root} has no models"
    failed = 0
    for folder in folders:
        compare = compare_texts if (folder / "texts.json").exists() else compare_model
        try:
            worst = compare(folder, load_file(folder / "results.safetensors"))
            right, told = worst <= ALLOWED, f"off by {worst:.1e} of the largest value"
        except Exception as error:
            right, told = False, f"{type(error).__name__}: {error}"
        failed += not right
        print(f"{'ok     ' if right else 'FAILED '} {folder.name}: {told}")
    print(f"{len(folders) - failed} of {len(folders)} folders give the same")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
