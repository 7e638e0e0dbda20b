-- Time of the newest call with each API key and by each agent, in microseconds since
-- 1970. An actor has one row for each partition in which its calls are recorded.
create table uses (
    actor       text collate "C" not null,
    tenant      text collate "C" not null,
    occurred_us bigint not null,
    primary key (actor, tenant)
);
