"""The experiments of the paper (El Alaoui and Mahoney), reproduced."""
