begin;

drop table download_links;

commit;
