"""Publicly reported wrong conversions of trees and pipelines, made small, and right models; see README.md."""
