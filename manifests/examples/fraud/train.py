"""Make a table of card transactions, train XGBoost on it, and register the model in MLflow under the alias `champion`.

MLflow's own variables, such as MLFLOW_TRACKING_URI, say where the server is and who asks.
"""

import argparse
from pathlib import Path

import mlflow
import numpy as np
import xgboost
from dataloader import FEATURES, get_dataloader_fn
from metrics import MetricsCalculator

NAME, ALIAS = "fraud", "champion"
SEED, HELD_OUT_SEED = 0, 1
HELD_OUT = 4000
ROUNDS = 60
PARAMETERS = {"objective": "binary:logistic", "max_depth": 6, "learning_rate": 0.2, "nthread": 1, "seed": SEED}
HERE = Path(__file__).parent


def transactions(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw features, float32 (rows, 8), and which transactions are frauds, int64 (rows,): about 6 in 100."""
    random = np.random.default_rng(seed)
    usual = random.lognormal(3.5, 0.6, rows)
    amount = usual * random.lognormal(0, 0.8, rows)
    minute = random.integers(0, 1440, rows)
    chip = random.integers(0, 3, rows)
    category = random.integers(0, 20, rows)
    errors = random.random(rows) < 0.02
    distance = random.exponential(20, rows) * (1 + 20 * (random.random(rows) < 0.1))
    since = random.exponential(600, rows)
    is_online, is_risky = chip == 2, np.isin(category, (3, 11, 17))
    logit = 6 * is_online * np.log(amount / usual) + 15 * (distance > 200) * (since < 240) * ~is_online
    logit += 12 * is_risky * (minute < 360) + 8 * is_risky * is_online + 5 * errors - 11.5
    frauds = random.random(rows) < 1 / (1 + np.exp(-logit))
    columns = {
        "amount": amount, "usual": usual, "minute": minute, "chip": chip, "category": category, "errors": errors,
        "distance": distance, "since": since,
    }  # fmt: skip
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float32), frauds.astype(np.int64)


def train(rows: int, shuffled: float) -> xgboost.Booster:
    """Train on so many transactions, after a share of them, from 0 to 1, got each other's labels."""
    features, frauds = transactions(rows, SEED)
    random = np.random.default_rng(SEED)
    wrong = random.random(rows) < shuffled
    frauds[wrong] = random.permutation(frauds[wrong])
    return xgboost.train(PARAMETERS, xgboost.DMatrix(features, frauds), ROUNDS)


def evaluate(model: xgboost.Booster, folder: Path) -> dict[str, float]:
    """Compute the metrics of the example on the held-out transactions in the folder."""
    ids, inputs, labels = next(get_dataloader_fn(str(folder), HELD_OUT)())
    predictions = {"prediction": model.predict(xgboost.DMatrix(inputs["features"]))}
    return MetricsCalculator().calc(ids=ids, y_pred=predictions, x=inputs, y_real=labels)


def register(model: xgboost.Booster, parameters: dict[str, float], metrics: dict[str, float]) -> str:
    """Log a run with its model and the user files, register the model, give it the alias, and return its version."""
    with mlflow.start_run():
        mlflow.log_params(parameters)
        mlflow.log_metrics(metrics)
        logged = mlflow.xgboost.log_model(
            model,
            name="model",
            code_paths=[str(HERE / "dataloader.py"), str(HERE / "metrics.py")],
            pip_requirements=["xgboost"],
            registered_model_name=NAME,
        )
    version = str(logged.registered_model_version)
    mlflow.MlflowClient().set_registered_model_alias(NAME, ALIAS, version)
    return version


def main() -> None:
    """Write the held-out transactions, train, register, and say how good the model is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20000, help="how many transactions to train on")
    parser.add_argument("--shuffled", type=float, default=0.0, help="share of the labels that are shuffled")
    parser.add_argument("--data-dir", type=Path, default=Path("held-out"), help="folder of held-out.npz")
    options = parser.parse_args()
    features, frauds = transactions(HELD_OUT, HELD_OUT_SEED)
    options.data_dir.mkdir(exist_ok=True)
    np.savez(options.data_dir / "held-out.npz", features=features, frauds=frauds)
    model = train(options.rows, options.shuffled)
    metrics = evaluate(model, options.data_dir)
    version = register(model, {"rows": options.rows, "shuffled": options.shuffled}, metrics)
    print(f"version {version} of {NAME} is the {ALIAS}: f1_score {metrics['f1_score']:.4f}", flush=True)


if __name__ == "__main__":
    main()
