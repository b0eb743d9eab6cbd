"""The benchmark of the search: commtune and its peers on recorded grids, at equal runs."""
