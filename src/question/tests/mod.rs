//! What the rules promise, in example questions of our own; hostile texts; and a measurement on data kept elsewhere.

mod hostile;
mod measured;
mod sentences;
