"""Keras' fit with validation."""

import numpy
import tensorflow

model = tensorflow.keras.Sequential([tensorflow.keras.Input((4,)), tensorflow.keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows, goals = numpy.random.rand(32, 4), numpy.random.rand(32, 1)
model.evaluate(rows, goals, verbose=0)
model.fit(rows, goals, batch_size=4, epochs=1, verbose=0, validation_data=(rows, goals))
model.predict(rows, verbose=0)
