"""Two commands to copy for every command: its help ends with them."""

EXAMPLES = {
    "allocate": ("planner allocate request.json", "planner allocate request.json --diff other.json --format json"),
    "forecast": (
        "planner forecast examples/changes/add-one.json",
        "planner forecast examples/changes/kafka-add-one.json -o json",
    ),
    "snapshot": (
        "planner snapshot -p policy.yaml -o snap.json",
        "planner snapshot -p policy.yaml --capture examples/captures/two-brokers-day -o snap.json",
    ),
    "simulate": (
        "planner simulate snap.json --counts 2..8",
        "planner simulate snap.json --strategy AVG_BY_CIRCLE --format yaml",
    ),
    "demand": (
        "planner demand snap.json",
        "planner demand --prometheus http://prometheus:9090 --group shop-orders --html demand.html",
    ),
    "plan": (
        "planner plan snap.json -p policy.yaml -o plan.yaml",
        "planner plan snap.json -p policy.yaml -o plan.yaml --at snapshot",
    ),
    "explain": ("planner explain plan.yaml", "planner explain plan.yaml --verbose --data data"),
    "approve": ("planner approve plan.yaml", "planner approve shop-20261121-103000 --namespace shop"),
    "apply": ("planner apply plan.yaml --dry-run", "planner apply plan.yaml --watch"),
    "status": ("planner status --namespace shop", "planner status plan.yaml --format json"),
    "abort": ("planner abort plan.yaml", "planner abort shop-20261121-103000 --namespace shop --no-wait"),
    "verify": ("planner verify plan.yaml", "planner verify plan.yaml --data data --format json"),
    "run": (
        "planner run --policies policies --data data",
        "planner run --policies policies --data data --plans plans --every 5m",
    ),
    "sample": (
        "planner sample --policies policies --data data",
        "planner sample --policies policies --data data --every 30s --once",
    ),
    "refresh": (
        "planner refresh plan.yaml -p policy.yaml -o fresh.yaml",
        "planner refresh plan.yaml -p k8s://shop/shop-orders --observe-seconds 120",
    ),
    "report": (
        "planner report plan.yaml -o report.html",
        "planner report runs/shop -p policy.yaml -o run.html",
    ),
    "doctor": (
        "planner doctor --all -n 127.0.0.1:9876",
        "planner doctor --kafka 127.0.0.1:9092 --group shop",
    ),
    "history": (
        "planner history --prometheus http://127.0.0.1:9090 --all",
        "planner history -p policy.yaml --days 3 --format json",
    ),
    "backtest": (
        "planner backtest scenario.json",
        "planner backtest scenario.json -o json",
        "planner backtest --prometheus http://127.0.0.1:9090 --group shop --days 14 --html backtest.html",
        "planner backtest --data data --policy policies/shop.yaml --play planner --play keda",
    ),
    "airflow check": (
        "planner airflow check",
        "planner airflow check --policies /etc/consumer-planner/policies --data /data --format json",
    ),
    "migrate update": (
        "planner migrate update snap.json -p policy.yaml -o plan.yaml --image shop:2",
        "planner migrate update snap.json -p policy.yaml -o plan.yaml --env LEVEL=debug --surge 1",
    ),
    "migrate strategy": (
        "planner migrate strategy snap.json -p policy.yaml -o plan.yaml --to AVG_BY_CIRCLE --green new --image a:2",
        "planner migrate strategy snap.json -p policy.yaml -o plan.yaml --to AVG --green new --env STRATEGY=AVG",
    ),
    "migrate rename": (
        "planner migrate rename snap.json -p policy.yaml -o plan.yaml --to shop-2 --green shop-2 --env GROUP=shop-2",
        "planner migrate rename snap.json -p policy.yaml -o - --to shop-2 --green shop-2 --change change.yaml",
    ),
    "migrate relocate": (
        "planner migrate relocate snap.json -p policy.yaml -o plan.yaml --green shop-2 --node-label zone=b",
        "planner migrate relocate snap.json -p policy.yaml -o - --green shop-2 --change change.yaml",
    ),
    "migrate cluster": (
        "planner migrate cluster snap.json -p policy.yaml -o plan.yaml --to new --green shop-2 --env SERVERS=new:9876",
        "planner migrate cluster snap.json -p policy.yaml -o - --to new --green shop-2 --change change.yaml",
    ),
    "migrate reset": (
        "planner migrate reset snap.json -p policy.yaml -o plan.yaml --to 2026-11-21T10:00:00Z",
        "planner migrate reset snap.json -p policy.yaml -o - --to latest --topic orders --ask-brokers",
    ),
    "migrate expand": (
        "planner migrate expand snap.json -p policy.yaml -o plan.yaml --topic orders --queues 16",
        "planner migrate expand snap.json -p policy.yaml -o plan.yaml --topic orders --queues 16 --consumers 8",
    ),
    "migrate shrink": (
        "planner migrate shrink snap.json -p policy.yaml -o plan.yaml --topic orders --queues 4",
        "planner migrate shrink snap.json -p policy.yaml --format json --topic orders --queues 4",
    ),
    "migrate subscription": (
        "planner migrate subscription snap.json -p policy.yaml -o plan.yaml --to orders --to refunds --env TOPICS=all",
        "planner migrate subscription snap.json -p policy.yaml -o - --to 'orders=a || b' --green shop-2 --env T=2",
    ),
    "migrate assignor": (
        "planner migrate assignor snap.json -p policy.yaml -o plan.yaml --to cooperative-sticky --variable ASSIGNOR",
        "planner migrate assignor snap.json -p policy.yaml -o plan.yaml --to range --green shop-2 --env ASSIGNOR=range",
    ),
    "migrate consumer-protocol": (
        "planner migrate consumer-protocol snap.json -p policy.yaml -o plan.yaml --env GROUP_PROTOCOL=consumer",
        "planner migrate consumer-protocol snap.json -p policy.yaml -o - --to range-server --change change.yaml",
    ),
}
"""Command -> its examples."""


def epilog(command: str) -> str:
    """Return the examples of a command as the end of its help; nothing for a command without any."""
    examples = EXAMPLES.get(command)
    return "Examples:\n\n" + "\n\n".join(f"$ {example}" for example in examples) if examples else ""
