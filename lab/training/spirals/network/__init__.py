"""The network that separates the spirals, and its data."""

from __future__ import annotations

import csv
from typing import Any

import tensorflow as tf


def network() -> Any:
    """Return a network of two hidden layers for points of the plane."""
    hidden = [tf.keras.layers.Dense(48, activation="tanh") for _layer in range(2)]
    return tf.keras.Sequential([tf.keras.Input((2,)), *hidden, tf.keras.layers.Dense(1, activation="sigmoid")])


def points(path: str, rank: int, size: int) -> tuple[Any, Any]:
    """Return this rank's share of the points, and the arm of the spirals on which each lies."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[rank::size]
    places = [[float(row["x"]), float(row["y"])] for row in rows]
    return tf.constant(places), tf.constant([[float(row["arm"])] for row in rows])
