-- What agents of an organization asked for on each day (UTC) of the decision, and
-- what their receipts report. agent is the data key of the agent's name, or empty
-- for a decision that names none; the name itself is encrypted. target is the host
-- that is paid (x402), or the server and the tool that is called (mcp).
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
    spent_usd   numeric not null, -- as receipts of fulfilled actions report
    newest      bigint not null, -- sequence of the newest decision
    primary key (tenant, day, actor, agent, protocol, target)
);

create index spend_agent on spend (tenant, agent, day);
create index spend_target on spend (tenant, target, day);

-- How often each rule found something on each day. A decision counts once for each
-- rule, however many findings of the rule it has.
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
