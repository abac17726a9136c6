#!/usr/bin/env python3
"""Writes small DeBERTa folders with what Hugging Face's classes give for them: make_deberta.py FOLDER

deberta_cls and deberta_v2_mlm beside this file were made with transformers 5.24.0 and PyTorch 2.13.0, in float64: casts of the
classes to float32 are casts to float64 here.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double

TINY = {"vocab_size": 24, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
        "max_position_embeddings": 16, "relative_attention": True, "initializer_range": 0.4}
FOLDERS = {
    "deberta_cls": ("DebertaForSequenceClassification", {
        **TINY, "embedding_size": 6, "type_vocab_size": 2, "position_biased_input": True, "max_relative_positions": 7,
        "pos_att_type": "c2p|p2c", "pooler_dropout": 0.2, "pooler_hidden_act": "tanh", "cls_dropout": 0.3, "num_labels": 3}),
    "deberta_v2_mlm": ("DebertaV2ForMaskedLM", {
        **TINY, "position_biased_input": False, "max_relative_positions": 10, "position_buckets": 6, "pos_att_type": ["p2c", "c2p"],
        "norm_rel_ebd": "layer_norm", "conv_kernel_size": 5, "conv_groups": 2, "hidden_act": "gelu_new", "legacy": False}),
}


def labels_for(architecture, batch, config):
    rows, length = batch["input_ids"].shape
    if architecture.endswith("MaskedLM"):
        labels = batch["input_ids"].clone()
        labels[torch.rand(rows, length) < 0.5] = -100
        return "mlm", labels
    if architecture.endswith("TokenClassification"):
        return "tokens", torch.randint(config.num_labels, (rows, length))
    if architecture.endswith("SequenceClassification"):
        return "sequence", torch.randint(config.num_labels, (rows,))
    return "span", torch.randint(length, (rows, 2))


def batch_of(config, rows, length, padding):
    batch = {"input_ids": torch.randint(1, config.vocab_size, (rows, length)), "attention_mask": torch.ones(rows, length, dtype=torch.long)}
    batch["token_type_ids"] = torch.randint(2, (rows, length)) if config.type_vocab_size else torch.zeros(rows, length, dtype=torch.long)
    for row in range(1, rows):
        hidden = slice(length - 2 * row, None) if padding == "right" else slice(0, 2 * row)
        for name in ("input_ids", "attention_mask", "token_type_ids"):
            batch[name][row, hidden] = 0
    return batch


def loss_of(model, batch, head, labels, **more):
    given = {"start_positions": labels[:, 0], "end_positions": labels[:, 1]} if head == "span" else {"labels": labels}
    out = model(**batch, **given, **more)
    logits = torch.stack([out.start_logits, out.end_logits], 2) if head == "span" else out.logits
    return out.loss, logits, out


def steps_of(model, run, batches, count):
    decays = {name: 0.0 if "bias" in name or "LayerNorm" in name else run["weight_decay"] for name, _ in model.named_parameters()}
    optimizer = torch.optim.AdamW([{"params": [p], "weight_decay": decays[name]} for name, p in model.named_parameters()], lr=run["lr"])
    total, warm_up = run["steps"], run["warm_up"]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: k / warm_up if k < warm_up else (total - k) / (total - warm_up))
    losses, norms, rates = [], [], []
    for step in range(count):
        batch, head, labels = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = loss_of(model, batch, head, labels)[0]
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), run["clip_grad_norm"]).item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    run["no_decay"] = sorted(name for name, decay in decays.items() if decay == 0)
    return losses, norms, rates


def write(folder, architecture, fields):
    torch.manual_seed(11)
    folder.mkdir(parents=True, exist_ok=True)
    model_class = getattr(transformers, architecture)
    config = model_class.config_class(**fields, attn_implementation="eager")
    first = model_class(config).to(torch.float32)
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, dtype=torch.float32))
    first.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    def model(dtype):
        return model_class.from_pretrained(folder, dtype=dtype, attn_implementation="eager").to(dtype).eval()

    inputs, batches = {}, {"batch": batch_of(config, 3, 11, "right"), "left_padded": batch_of(config, 2, 8, "left"),
                           "longest": batch_of(config, 1, config.max_position_embeddings, "right"), "one_token": batch_of(config, 1, 1, "right")}
    batches |= {f"train.{i}": batch_of(config, 3, 9, "right") for i in range(2)}
    labels = {name: labels_for(architecture, batch, config) for name, batch in batches.items() if name == "batch" or name.startswith("train")}
    for name, batch in batches.items():
        inputs |= {f"{name}.{field}": ids for field, ids in batch.items()}
        if name in labels:
            inputs[f"{name}.labels.{labels[name][0]}"] = labels[name][1]
    head, wanted = labels["batch"]

    exact = model(torch.float64)
    loss, logits, out = loss_of(exact, batches["batch"], head, wanted, output_hidden_states=True, output_attentions=True)
    loss.backward()
    expected = {f"batch.hidden_states.{i}": h for i, h in enumerate(out.hidden_states)}
    expected |= {f"batch.attentions.{i}": a for i, a in enumerate(out.attentions)}
    expected |= {f"batch.logits.{head}": logits, "batch.loss": loss}
    expected |= {f"grad.{name}": p.grad for name, p in exact.named_parameters() if p.grad is not None}
    for name in ("left_padded", "longest", "one_token"):
        expected[f"{name}.last_hidden_state"] = exact.deberta(**batches[name]).last_hidden_state

    run = {"steps": 8, "warm_up": 2, "lr": 2e-3, "weight_decay": 0.01, "clip_grad_norm": 1.0, "batches": 2}
    train = [(batches[f"train.{i}"], *labels[f"train.{i}"]) for i in range(2)]
    run["losses"], run["grad_norms"], run["learning_rates"] = steps_of(model(torch.float64), run, train, run["steps"])
    run["losses_float32_torch"] = steps_of(model(torch.float32), run, train, run["steps"])[0]
    dropping = model(torch.float32).train()
    torch.manual_seed(7)
    dropout_loss, dropout_logits, _ = loss_of(dropping, batches["batch"], head, wanted)
    torch.manual_seed(7)
    expected["dropout.last_hidden_state"] = dropping.deberta(**batches["batch"]).last_hidden_state
    expected[f"dropout.logits.{head}"] = dropout_logits

    save_file({name: value.detach().contiguous() for name, value in expected.items()}, folder / "expected.safetensors")
    save_file({name: value.contiguous() for name, value in inputs.items()}, folder / "inputs.safetensors")
    case = {"architecture": architecture, "head": head, "dropout_loss_float32": dropout_loss.item(), "train": run}
    (folder / "case.json").write_text(json.dumps(case) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    torch.set_num_threads(1)
    for folder_name, (name, fields) in FOLDERS.items():
        write(pathlib.Path(sys.argv[1]) / folder_name, name, fields)
