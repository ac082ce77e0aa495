"""The comparison of CAFE with other methods, see docs/answers.md."""
