//! Test traffic: stamped flows at layer-1 rates.
