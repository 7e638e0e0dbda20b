"""Types of the contract, made by generate.py: do not change them by hand."""
from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Union

if sys.version_info >= (3, 11):
    from typing import Literal, NotRequired, TypedDict
else:
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from typing_extensions import Literal, NotRequired, TypedDict
    else:
        TypedDict = dict


class ActionSafetyQuickGateAnswer(TypedDict):
    actionBindingVersion: Literal['svc-action-v1']
    actionHash: str
    matchedRuleIds: List[str]
    nextRecommendedCall: Optional[NextCall]
    requiresApproval: bool
    risk: Literal['low', 'medium', 'high', 'critical']
    service: Literal['action-safety-quick-gate']
    status: Literal['scored']


class ActionSafetyQuickGateRequest(TypedDict):
    actor: NotRequired[Optional[str]]
    branch: NotRequired[Optional[str]]
    command: str
    commit: NotRequired[Optional[str]]
    cwd: NotRequired[Optional[str]]
    diffHash: NotRequired[Optional[str]]
    diffStat: NotRequired[Optional[str]]
    environment: NotRequired[Optional[str]]
    failClosedOnUnmatched: NotRequired[Optional[bool]]
    intent: NotRequired[Optional[str]]
    repo: NotRequired[Optional[str]]
    target: NotRequired[Optional[str]]


class ApprovalRecord(TypedDict):
    approvalId: str
    approvedBy: str
    bindingHash: str
    decisionId: str
    decisionRecordHash: str
    humanApprovalIncluded: bool
    issuedAt: str
    orgId: str
    reason: str
    schema: str
    selfApproved: NotRequired[bool]
    validUntil: str
    verdict: Literal['approved', 'rejected']


class Asserted(TypedDict):
    policyHash: str
    stricterFields: List[str]


class AssuranceBindReceiptAnswer(TypedDict):
    integrity: Integrity
    ledger: LedgerPosition
    record: ReceiptRecord
    verify: VerifyAt


class AssuranceBindReceiptRequest(TypedDict):
    bindingHash: str
    decisionId: str
    decisionRecordHash: str
    evidenceHashes: NotRequired[Optional[List[str]]]
    observedAt: NotRequired[Optional[str]]
    outcome: Literal['fulfilled', 'failed', 'rejected']
    protocol: Literal['x402', 'mcp']
    responseBodyHash: NotRequired[Optional[str]]
    responseStatus: NotRequired[Optional[int]]
    settlementId: NotRequired[Optional[str]]


class AssuranceDecideAnswer(TypedDict):
    integrity: Integrity
    ledger: LedgerPosition
    record: DecisionRecord
    verify: VerifyAt


class AssuranceDecideRequest(TypedDict):
    idempotencyKey: str
    intent: IntentInput
    policy: NotRequired[Optional[AssurancePolicy]]
    protocol: Literal['x402', 'mcp']
    subject: AssuranceSubjectInput


class AssuranceGetApprovalAnswer(TypedDict):
    integrity: Integrity
    ledger: LedgerPosition
    record: ApprovalRecord
    verify: VerifyAt


class AssuranceGetStandingAnswer(TypedDict):
    activeDecision: Literal['allow', 'deny', 'needs_review']
    approvalId: Optional[str]
    checkedAt: str
    decision: Literal['allow', 'deny', 'needs_review']
    decisionId: str
    decisionRecordHash: str
    holds: bool
    orgId: str
    reason: Optional[str]
    validUntil: Optional[str]


class AssurancePolicy(TypedDict):
    allowedHosts: NotRequired[List[str]]
    allowedMcpServers: NotRequired[List[str]]
    allowedMcpTools: NotRequired[List[str]]
    allowedNetworks: NotRequired[List[str]]
    allowedPayTo: NotRequired[List[str]]
    blockedHosts: NotRequired[List[str]]
    blockedMcpTools: NotRequired[List[str]]
    maxUsdPerTransaction: NotRequired[float]
    policyId: str
    requireExactScheme: NotRequired[bool]
    requireHttps: NotRequired[bool]
    requireMcpArgumentBinding: NotRequired[bool]
    requirePaymentIdentifier: NotRequired[bool]
    requireResourceBinding: NotRequired[bool]
    reviewMcpRiskAtOrAbove: NotRequired[Literal['medium', 'high', 'critical']]
    version: int


class AssuranceSubject(TypedDict):
    agentId: NotRequired[str]
    purpose: NotRequired[str]
    runId: str


class AssuranceSubjectInput(TypedDict):
    agentId: NotRequired[Optional[str]]
    purpose: NotRequired[Optional[str]]
    runId: str


class BareError(TypedDict):
    error: str


class DecisionRecord(TypedDict):
    approval: RecordApproval
    assuranceActionHash: str
    bindingHash: str
    decision: Literal['allow', 'deny', 'needs_review']
    decisionId: str
    engineVersion: str
    environment: Literal['dev', 'live']
    findings: List[V1Finding]
    idempotencyKeyHash: str
    intent: Dict[str, Any]
    issuedAt: str
    normalized: V1Intent
    orgId: str
    policy: RecordPolicy
    protocol: Literal['x402', 'mcp']
    rulesEvaluated: List[str]
    rulesetHash: str
    schema: str
    subject: AssuranceSubject
    supersedes: Optional[str]
    validUntil: Optional[str]


class Error(TypedDict):
    code: NotRequired[str]
    docUrl: NotRequired[str]
    error: str
    path: NotRequired[str]
    payPerCall: NotRequired[bool]
    paymentId: NotRequired[str]
    requestId: NotRequired[str]
    resetsAt: NotRequired[str]
    retry: NotRequired[str]
    upgradeUrl: NotRequired[str]
    validBefore: NotRequired[str]


class GetRuleAnswer(TypedDict):
    catches: str
    catchesNot: List[str]
    category: str
    context: List[str]
    id: str
    instead: NotRequired[str]
    level: str
    notRaised: List[Judged]
    questions: List[str]
    raised: List[Judged]
    retired: NotRequired[bool]
    reversible: Literal['yes', 'hard', 'no']
    safer: List[Judged]
    title: str
    why: str


class Integrity(TypedDict):
    canonicalization: str
    hashAlgorithm: str
    keyId: str
    payloadType: str
    recordHash: str
    signature: str
    signatureAlgorithm: str


class IntentInput(TypedDict):
    amountUnits: NotRequired[Optional[str]]
    amountUsd: NotRequired[Optional[float]]
    asset: NotRequired[Optional[str]]
    declaredRisk: NotRequired[Optional[Literal['low', 'medium', 'high', 'critical']]]
    facilitatorUrl: NotRequired[Optional[str]]
    method: NotRequired[Optional[str]]
    network: NotRequired[Optional[str]]
    payTo: NotRequired[Optional[str]]
    paymentIdentifier: NotRequired[Optional[str]]
    paymentPayloadMethod: NotRequired[Optional[str]]
    paymentPayloadResource: NotRequired[Optional[str]]
    resourceUrl: NotRequired[Optional[str]]
    scheme: NotRequired[Optional[str]]
    serverId: NotRequired[Optional[str]]
    serverUrl: NotRequired[Optional[str]]
    toolArguments: NotRequired[Optional[Any]]
    toolArgumentsHash: NotRequired[Optional[str]]
    toolName: NotRequired[Optional[str]]


class Judged(TypedDict):
    actor: NotRequired[str]
    branch: NotRequired[str]
    command: str
    commit: NotRequired[str]
    cwd: NotRequired[str]
    diffHash: NotRequired[str]
    diffStat: NotRequired[str]
    environment: NotRequired[str]
    failClosedOnUnmatched: NotRequired[bool]
    intent: NotRequired[str]
    matchedRuleIds: List[str]
    repo: NotRequired[str]
    risk: Literal['low', 'medium', 'high', 'critical']
    target: NotRequired[str]


class LedgerPosition(TypedDict):
    eventHash: str
    partition: NotRequired[int]
    position: int
    sequence: int
    tenant: str


class NextCall(TypedDict):
    method: Literal['POST']
    path: str
    priceCents: int
    tool: str


class ReceiptFinding(TypedDict):
    effect: Literal['info', 'inconclusive', 'violation']
    field: str
    message: str
    ruleId: str


class ReceiptRecord(TypedDict):
    approvalId: Optional[str]
    bindingHash: str
    conformance: Literal['conforming', 'violation', 'inconclusive']
    decision: Literal['allow', 'deny', 'needs_review']
    decisionId: str
    decisionRecordHash: str
    evidenceHashes: List[str]
    findings: List[ReceiptFinding]
    late: bool
    observedAt: Optional[str]
    orgId: str
    outcome: Literal['fulfilled', 'failed', 'rejected']
    protocol: Literal['x402', 'mcp']
    receiptId: str
    receivedAt: str
    responseBodyHash: Optional[str]
    responseStatus: Optional[int]
    schema: str
    settlementId: Optional[str]
    submittedBy: Submitter


class RecordApproval(TypedDict):
    approvalId: Optional[str]
    humanApprovalIncluded: bool
    required: bool


class RecordPolicy(TypedDict):
    activatedSequence: int
    asserted: Optional[Asserted]
    policyHash: str
    policyId: str
    version: int


class Submitter(TypedDict):
    memberId: NotRequired[str]
    tokenId: NotRequired[str]


class V1Finding(TypedDict):
    actual: str
    effect: Literal['info', 'needs_review', 'deny']
    expected: str
    field: str
    message: str
    ruleId: str
    source: Literal['policy', 'assertion', 'always']


class V1Intent(TypedDict):
    amountUnits: NotRequired[str]
    amountUnitsInUsd: NotRequired[str]
    amountUnitsInvalid: NotRequired[bool]
    amountUsd: NotRequired[str]
    amountUsdInvalid: NotRequired[bool]
    asset: NotRequired[str]
    declaredRisk: NotRequired[str]
    facilitatorHasUserinfo: NotRequired[bool]
    facilitatorUrl: NotRequired[str]
    method: NotRequired[str]
    network: NotRequired[str]
    payTo: NotRequired[str]
    payToInvalid: NotRequired[bool]
    paymentIdentifier: NotRequired[str]
    paymentIdentifierInvalid: NotRequired[bool]
    paymentPayloadMethod: NotRequired[str]
    paymentPayloadResource: NotRequired[str]
    paymentPayloadResourceInvalid: NotRequired[bool]
    resourceHasFragment: NotRequired[bool]
    resourceHasUserinfo: NotRequired[bool]
    resourceUrl: NotRequired[str]
    scheme: NotRequired[str]
    serverHasFragment: NotRequired[bool]
    serverHasUserinfo: NotRequired[bool]
    serverId: NotRequired[str]
    serverUrl: NotRequired[str]
    toolArgumentsGiven: NotRequired[bool]
    toolArgumentsGivenHash: NotRequired[str]
    toolArgumentsHash: NotRequired[str]
    toolArgumentsHashInvalid: NotRequired[bool]
    toolName: NotRequired[str]


class VerifyAt(TypedDict):
    method: str
    url: str


Action = ActionSafetyQuickGateRequest
Intent = IntentInput
