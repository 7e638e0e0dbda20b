begin;

drop table webhook_deliveries;

commit;
