-- The organizations of each member, for the page after sign-in. The rights of a
-- member are read from the ledger and never from here.
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
