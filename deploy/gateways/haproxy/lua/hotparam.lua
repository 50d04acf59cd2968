-- Asks hotparam about a request, by its door for HTTP with the scheme "original".
local url = "http://" .. (os.getenv("HOTPARAM_AUTH") or "127.0.0.1:9132") .. "/original"
local timeout = tonumber(os.getenv("HOTPARAM_TIMEOUT_MS") or "50")

-- What is of the client's connection, or says what is asked about, is not passed on.
local dropped = {
  ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
  ["upgrade"] = true, ["te"] = true, ["keep-alive"] = true, ["proxy-connection"] = true,
  ["x-original-method"] = true, ["x-original-uri"] = true, ["x-real-ip"] = true,
}

core.register_action("hotparam", {"http-req"}, function(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not dropped[name] then
      local list = {}
      for i = 0, #values do -- HAProxy counts from 0 here
        list[#list + 1] = values[i]
      end
      headers[name] = list
    end
  end
  headers["x-original-method"] = {txn.sf:method()}
  headers["x-original-uri"] = {txn.sf:pathq()}
  headers["x-real-ip"] = {txn.sf:src()}

  local ok, reply = pcall(function()
    return core.httpclient():get{url = url, headers = headers, timeout = timeout}
  end)
  -- Of a service that is away HAProxy itself makes a 503, so an answer without hotparam's own
  -- header lets the request pass.
  if not ok or reply == nil or reply.headers == nil or reply.headers["x-hotparam"] == nil then
    return
  end
  if reply.status < 300 then
    return
  end
  local answer = txn:reply{status = reply.status, body = reply.body}
  for _, name in ipairs({"retry-after", "ratelimit", "ratelimit-policy", "content-type", "cache-control"}) do
    if reply.headers[name] then
      answer:add_header(name, reply.headers[name][0])
    end
  end
  txn:done(answer)
end)
