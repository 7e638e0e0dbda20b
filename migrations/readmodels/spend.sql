-- Numbers and amounts of an organization's decisions and receipts, by the day (UTC)
-- of the decision. agent is the id of the data key of the agent's name, which itself
-- is encrypted; it is empty if the decision names no agent. target is the paid host
-- (x402), or the server and the called tool (mcp).
create table spend (
    tenant      text collate "C" not null,
    day         date not null,
    actor       text collate "C" not null,
    agent       text collate "C" not null,
    protocol    text collate "C" not null check (protocol in ('x402', 'mcp')),
    target      text collate "C" not null,
    allowed     bigint not null,
    denied      bigint not null,
    reviewed    bigint not null,
    violations  bigint not null, -- receipts that contradict their decision
    allowed_usd numeric not null,
    spent_usd   numeric not null, -- sum over receipts of fulfilled actions
    newest      bigint not null, -- sequence of the newest decision
    primary key (tenant, day, actor, agent, protocol, target)
);

create index spend_agent on spend (tenant, agent, day);
create index spend_target on spend (tenant, target, day);

-- Number of decisions in which each rule had findings, by day. A decision counts
-- once for each rule, even if it has several findings of that rule.
create table noise (
    tenant   text collate "C" not null,
    day      date not null,
    actor    text collate "C" not null,
    agent    text collate "C" not null,
    rule     text collate "C" not null,
    allowed  bigint not null,
    denied   bigint not null,
    reviewed bigint not null,
    primary key (tenant, day, actor, agent, rule)
);
