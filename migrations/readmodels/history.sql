-- Decisions and receipts of organizations, for the history. For a receipt, item is
-- the canonical JSON of the answer without its alerts, which are added later, when
-- another receipt names the same settlement. For a decision, item is null, and the
-- answer is read from its event. The members by which the list of decisions is filtered
-- have columns without an index: a filter compares them row by row, which is fast enough
-- for a list, and costs far less than an index for each decision that is recorded.
create table history (
    tenant        text collate "C" not null,
    sequence      bigint not null,
    kind          text collate "C" not null check (kind in ('decision', 'receipt')),
    decision_id   text collate "C" not null,
    receipt_id    text collate "C",
    actor         text collate "C" not null,
    agent         text collate "C", -- of a decision that names an agent: the data key of its name
    decision      text collate "C" not null,
    verdict       text collate "C", -- verdict of a person about the decision
    conformance   text collate "C", -- conformance of a receipt
    settlement_id text collate "C",
    alerts        text[] not null default '{}',
    protocol      text collate "C", -- of a decision, as are the next three
    run           text collate "C",
    target        text collate "C", -- paid host, or server and called tool
    rules         text[],           -- rules with a finding
    item          text,
    primary key (tenant, sequence)
);

create index history_decision on history (tenant, decision_id);
create unique index history_receipt on history (tenant, receipt_id) where receipt_id is not null;
create index history_settlement on history (tenant, settlement_id) where settlement_id is not null;
create index history_actor on history (tenant, actor, sequence);
create index history_agent on history (tenant, agent, sequence) where agent is not null;
create index history_conformance on history (tenant, conformance, sequence) where conformance is not null;
create index history_review on history (tenant, sequence) where kind = 'decision' and decision = 'needs_review' and verdict is null;
