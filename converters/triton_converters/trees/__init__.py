"""Trees as XGBoost and LightGBM save them: what their files hold, and rows of a table that show what they learned."""
