"""Which history a seed gives: pure, nothing but values in and values out."""
