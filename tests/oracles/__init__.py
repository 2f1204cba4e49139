"""Values of other libraries, frozen, and the scripts that ask those libraries for them."""
