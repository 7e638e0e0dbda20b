-- Decisions that needed a person's review, with verdict and receipt. Times are those
-- of the events, in microseconds since 1970.
create table oversight (
    tenant      text collate "C" not null,
    sequence    bigint not null, -- sequence of the decision
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
