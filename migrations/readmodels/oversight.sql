-- Decisions that needed a person's review, and what became of them. Times are
-- microseconds since 1970, of the events.
create table oversight (
    tenant      text collate "C" not null,
    sequence    bigint not null, -- of the decision
    decision_id text collate "C" not null,
    asked_us    bigint not null,
    verdict     text collate "C",
    reviewer    text collate "C",
    answered_us bigint,
    until_us    bigint, -- end of the approval
    used        boolean not null default false, -- a receipt names the approval
    reported    boolean not null default false, -- there is a receipt
    primary key (tenant, sequence)
);

create unique index oversight_decision on oversight (tenant, decision_id);
create index oversight_asked on oversight (tenant, asked_us);
