"""The programs that run inside the Jobs: resolve, convert, verify and measure a model."""
