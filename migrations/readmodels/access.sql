-- Events that tell who had access to an organization and its records: members,
-- tokens, policies, webhooks, exports, verifications, erasures and openings of
-- personal data. What is shown of one is read from its event.
create table access (
    tenant      text collate "C" not null,
    sequence    bigint not null,
    type        text collate "C" not null,
    actor       text collate "C" not null,
    occurred_us bigint not null,
    primary key (tenant, sequence)
);

create index access_time on access (tenant, occurred_us);
create index access_type on access (tenant, type, sequence);
