"""assuranceActionHash of a pending call, just before it is made: equal to the
decision's, or the call is not the one that was decided about. Standard library
only. Hosts must be ASCII (A-labels), arguments without fractions."""
import hashlib, json, re, sys
from decimal import Decimal
from urllib.parse import urlsplit

CHAINS = {"base": 8453, "base-sepolia": 84532, "ethereum": 1, "polygon": 137, "arbitrum": 42161, "optimism": 10, "avalanche": 43114, "avalanche-fuji": 43113}
SOLANA = {"solana": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "solana-devnet": "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1"}
NETWORKS = {**{name: f"eip155:{n}" for name, n in CHAINS.items()}, **SOLANA}
FIELDS = {"x402": "method resourceUrl scheme network asset payTo amountUnits amountUsd paymentIdentifier", "mcp": "serverId serverUrl toolName toolArgumentsHash"}

def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

def url(text):
    u, text = urlsplit(text), text.split("#")[0]
    host = u.hostname.removesuffix(".") if ":" not in u.hostname else f"[{u.hostname}]"
    port = "" if u.port in (None, {"http": 80, "https": 443}.get(u.scheme)) else f":{u.port}"
    return f"{u.scheme}://{host}{port}{u.path or '/'}" + (text[text.index("?"):] if "?" in text else "")

def action_hash(protocol, intent):
    a = {name: intent[name] for name in FIELDS[protocol].split() if name in intent}
    if "toolArguments" in intent:
        a["toolArgumentsHash"] = hashlib.sha256(canonical(intent["toolArguments"])).hexdigest()
    if "network" in a:
        a["network"] = NETWORKS.get(a["network"], a["network"])
    for name, value in a.items():
        if name in ("resourceUrl", "serverUrl"):
            a[name] = url(value)
        elif name == "method":
            a[name] = value.upper()
        elif name in ("asset", "payTo") and a.get("network", "").startswith("eip155:") and re.fullmatch("0x[0-9a-fA-F]{40}", value):
            a[name] = value.lower()
        elif name == "amountUsd":
            a[name] = format(Decimal(str(value)).normalize(), "f")
    if "amountUnits" in a:
        a.pop("amountUsd", None)
    return hashlib.sha256(b"svc-assurance-action-v1\n" + canonical({"protocol": protocol, "intent": a})).hexdigest()

if __name__ == "__main__":
    call = json.load(sys.stdin, parse_float=Decimal)
    print(action_hash(call["protocol"], call["intent"]))
