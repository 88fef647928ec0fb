-- The health of a TritonDeployment for Argo CD: `obj` is the object, and the answer has a status and a message.
local health = {status = "Progressing", message = "the operator has not looked at this version of the object yet"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local ready, stalled, reconciling = conditions["Ready"], conditions["Stalled"], conditions["Reconciling"]
if ready == nil then
  return health
end
health.message = ready.reason .. ": " .. ready.message
-- Both may be true of an object that is Ready: a new revision was undone, or is soaked.
if stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
elseif reconciling ~= nil and reconciling.status == "True" then
  health.status = "Progressing"
elseif ready.status == "True" then
  health.status = "Healthy"
elseif ready.reason == "AwaitingApproval" or ready.reason == "Suspended" then
  health.status = "Suspended"
end
return health
