"""The parts of the stand-in; imported lazily, since start-up time is part of the contract."""
