"""assuranceActionHash of a pending call in normal form. Standard library only."""
import hashlib, json, sys

X402 = ["method", "resourceUrl", "scheme", "network", "asset", "payTo", "amountUnits", "paymentIdentifier"]
MCP = ["serverId", "serverUrl", "toolName", "toolArgumentsHash"]

def sha256(prefix, value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256((prefix + text).encode()).hexdigest()

def action_hash(protocol, intent):
    if "toolArguments" in intent:
        intent = {**intent, "toolArgumentsHash": sha256("", intent["toolArguments"])}
    names = MCP if protocol == "mcp" else X402 if "amountUnits" in intent else X402 + ["amountUsd"]
    action = {name: intent[name] for name in names if name in intent}
    return sha256("svc-assurance-action-v1\n", {"intent": action, "protocol": protocol})

if __name__ == "__main__":
    call = json.load(sys.stdin)
    print(action_hash(call["protocol"], call["intent"]))
