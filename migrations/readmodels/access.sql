-- Events about access to an organization and its records: members, tokens,
-- policies, webhooks, exports, verifications, erasures, and displays of personal
-- data. The details of an entry are read from its event.
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
create index access_actor on access (tenant, actor, sequence);
