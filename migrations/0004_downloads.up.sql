-- Links to the files of purchases. They are short-lived secrets, kept as hashes
-- and forgotten; that one was used is in events, and decided there.
begin;

-- A purchase has five slots, so no more than five links of it wait to be used;
-- a sixth takes the place of the oldest.
create table download_links (
    p           smallint not null check (p >= 0),
    purchase_id text collate "C" not null check (purchase_id <> ''),
    slot        smallint not null check (slot between 0 and 4),
    token_hash  bytea not null check (octet_length(token_hash) = 32),
    product     text collate "C" not null check (product <> ''),
    expires_at  timestamptz not null,
    primary key (p, purchase_id, slot)
);

create unique index download_links_token on download_links (p, token_hash);
create index download_links_expiry on download_links (expires_at);

grant select, insert, update, delete on download_links to countersign_app;

commit;
