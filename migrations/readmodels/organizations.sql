-- The organizations of each member, for the page after sign-in. What the
-- member may do there is read from the ledger.
create table organizations (
    org_id text collate "C" primary key,
    name   text not null,
    plan   text collate "C" not null
);

create table organization_members (
    org_id    text collate "C" not null,
    member_id text collate "C" not null,
    role      text collate "C" not null,
    primary key (member_id, org_id)
);
