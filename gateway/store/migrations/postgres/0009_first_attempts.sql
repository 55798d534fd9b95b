-- Only SQLite keeps a call and its first attempt in one row: PostgreSQL's time goes into other things.

SELECT 'nothing to change';
