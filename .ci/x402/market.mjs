// A local chain with a token at the address of USDC on Base Sepolia, and a
// facilitator made of the reference implementation. It prints its addresses as
// one line of JSON and ends with its standard input.
//
// POST /fault with {"settle":"drop"} makes the facilitator settle once without
// answering.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import solc from "solc";
import { createTestClient, createWalletClient, http, keccak256, publicActions, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

const network = "eip155:84532";
const asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const key = (label) => keccak256(toHex("countersign:test:" + label));

// startChain runs anvil on a free port.
function startChain() {
  const anvil = spawn("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil", ["--chain-id", "84532", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  process.on("exit", () => anvil.kill());
  return new Promise((resolve, reject) => {
    anvil.on("error", reject);
    anvil.on("exit", (code) => reject(new Error(`anvil ended with ${code}`)));
    createInterface({ input: anvil.stdout }).on("line", (line) => {
      const address = line.match(/^Listening on (.+)$/);
      if (address) resolve(`http://${address[1]}`);
    });
  });
}

function compileToken() {
  const output = JSON.parse(solc.compile(JSON.stringify({
    language: "Solidity",
    sources: { "token.sol": { content: readFileSync("token.sol", "utf8") } },
    settings: { outputSelection: { "*": { "*": ["abi", "evm.deployedBytecode.object"] } } },
  })));
  const failed = (output.errors ?? []).filter((e) => e.severity === "error");
  if (failed.length > 0) throw new Error(failed.map((e) => e.formattedMessage).join("\n"));
  const { abi, evm } = output.contracts["token.sol"].Token;
  return { abi, code: `0x${evm.deployedBytecode.object}` };
}

async function body(request) {
  let text = "";
  for await (const part of request) text += part;
  return JSON.parse(text);
}

const rpc = await startChain();
const transport = http(rpc);
const account = privateKeyToAccount(key("facilitator"));
const chain = createTestClient({ chain: baseSepolia, mode: "anvil", transport }).extend(publicActions);
const wallet = createWalletClient({ account, chain: baseSepolia, transport });
const token = compileToken();
await chain.setCode({ address: asset, bytecode: token.code });
await chain.setBalance({ address: account.address, value: 10n ** 20n });
for (const buyer of ["fetch", "axios"]) {
  const { address } = privateKeyToAccount(key(buyer));
  await wallet.writeContract({ address: asset, abi: token.abi, functionName: "mint", args: [address, 1_000_000n] });
}

const facilitator = new x402Facilitator().register(network, new ExactEvmScheme(toFacilitatorEvmSigner({
  address: account.address,
  readContract: (args) => chain.readContract({ ...args, args: args.args ?? [] }),
  verifyTypedData: (args) => chain.verifyTypedData(args),
  writeContract: (args) => wallet.writeContract({ ...args, args: args.args ?? [] }),
  sendTransaction: (args) => wallet.sendTransaction(args),
  waitForTransactionReceipt: (args) => chain.waitForTransactionReceipt(args),
  getCode: (args) => chain.getCode(args),
})));

let fault = "";
const server = createServer(async (request, response) => {
  const answer = (status, value) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
  try {
    switch (request.url) {
      case "/supported":
        return answer(200, facilitator.getSupported());
      case "/verify": {
        const { paymentPayload, paymentRequirements } = await body(request);
        return answer(200, await facilitator.verify(paymentPayload, paymentRequirements));
      }
      case "/settle": {
        const { paymentPayload, paymentRequirements } = await body(request);
        const settled = await facilitator.settle(paymentPayload, paymentRequirements);
        if (fault === "drop") {
          fault = "";
          return request.socket.destroy();
        }
        return answer(200, settled);
      }
      case "/fault":
        fault = (await body(request)).settle;
        return answer(200, {});
    }
    answer(404, {});
  } catch (error) {
    console.error(error);
    answer(500, { error: "internal error" });
  }
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ rpc, facilitator: `http://127.0.0.1:${server.address().port}` }));
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
