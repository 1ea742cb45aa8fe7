//! The block life cycle of Fig. 6, the reuse of low pages, and the expected number of erases.
