-- Who is signed in, and what a bearer token belongs to. Sessions and links are
-- not events: they are short-lived secrets of people, kept as hashes and
-- forgotten. What they lead to (a customer, a member, an activation) is in events.
begin;

-- data is the session's content as the session library encodes it: customer,
-- chosen organization, time of sign-in.
create table sessions (
    p          smallint not null check (p >= 0),
    token_hash text collate "C" not null check (token_hash <> ''),
    data       bytea not null,
    expires_at timestamptz not null,
    primary key (p, token_hash)
);

create index sessions_expiry on sessions (expires_at);

-- One row per address, so that only its newest link works. subject_ref is the
-- pseudonym of the address (package ledger, Vault.Reference); the address itself
-- is in box, encrypted under a key made from the link's secret, which is not here.
create table signin_links (
    p           smallint not null check (p >= 0),
    subject_ref bytea not null check (octet_length(subject_ref) = 32),
    token_hash  bytea not null check (octet_length(token_hash) = 32),
    box         bytea not null check (octet_length(box) > 0),
    expires_at  timestamptz not null,
    primary key (p, subject_ref)
);

create index signin_links_token on signin_links (p, token_hash);

-- A bearer token names no tenant, so its stream is looked for in all of them;
-- the stream found is then read and hashed like any other.
create index events_organization_tokens on events (p, stream) where type = 'organization_token.issued';
create index events_tokens_of_tenant on events (p, tenant, tseq) where type = 'organization_token.issued';
create index events_organizations on events (p, pos) where type = 'organization.created';

grant select, insert, update, delete on sessions, signin_links to countersign_app;

commit;
