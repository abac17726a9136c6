"""Writes the files of this folder with NumPy: python3 make_files.py"""

import numpy as np

a = np.arange(6, dtype=np.float32).reshape(2, 3)

np.save("big_endian.npy", a.astype(">f4"))
np.save("big_endian_columns.npy", np.asfortranarray(a.astype(">f8")))
np.save("half.npy", np.array([1.5, -0.0, 6e-8, np.inf], dtype=np.float16))
np.save("int8.npy", np.array([[-128, 127]], dtype=np.int8))
np.save("mask.npy", np.array([True, False, True]))
for version in (2, 3):
    with open(f"version_{version}.npy", "wb") as file:
        np.lib.format.write_array(file, a, version=(version, 0))
np.savez("stored.npz", **{"layer.weight": a, "größe": np.array(2.5)})
np.savez_compressed("deflated.npz", zeros=np.zeros(50000, np.float32), a=a)
